"""The competitors, one file a method, behind one face: settings, `fit`, then `predict` under a named access."""

from gcon.baselines.class_sums import ClassSumsMethod
from gcon.baselines.controls import EncoderAlone, EncoderOneHop
from gcon.baselines.dp_sgd import DPSGD
from gcon.baselines.dpgcn import DPGCN
from gcon.baselines.gap import GAP
from gcon.baselines.gaussian_objective import GaussianObjectiveMethod
from gcon.baselines.gcn import GCN
from gcon.baselines.gpr_gnn import GPRGNN
from gcon.baselines.interface import FittedMethod, Method, PrivateMethod
from gcon.baselines.lpgnet import LPGNet
from gcon.baselines.mlp import MLP
from gcon.baselines.moments import Moments, MomentsWithoutEdges
from gcon.baselines.output_perturbation import OutputPerturbationMethod
from gcon.baselines.progap import ProGAP
from gcon.baselines.self_training import SelfTraining
from gcon.baselines.self_training_rounds import SelfTrainingRounds

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        EncoderAlone,
        EncoderOneHop,
        SelfTraining,
        MomentsWithoutEdges,
        MLP,
        GCN,
        GPRGNN,
        DPGCN,
        LPGNet,
        GAP,
        ProGAP,
        DPSGD,
        Moments,
        ClassSumsMethod,
        SelfTrainingRounds,
        GaussianObjectiveMethod,
        OutputPerturbationMethod,
    )
}

__all__ = [
    "DPGCN",
    "DPSGD",
    "GAP",
    "GCN",
    "GPRGNN",
    "METHODS",
    "MLP",
    "ClassSumsMethod",
    "EncoderAlone",
    "EncoderOneHop",
    "FittedMethod",
    "GaussianObjectiveMethod",
    "LPGNet",
    "Method",
    "Moments",
    "MomentsWithoutEdges",
    "OutputPerturbationMethod",
    "PrivateMethod",
    "ProGAP",
    "SelfTraining",
    "SelfTrainingRounds",
]

"""The competitors, one file per method, behind one face: settings, `fit`, then `predict` under a named access."""

from gcon.methods.controls import EncoderAlone, EncoderOneHop, MomentsWithoutEdges
from gcon.methods.method import Method
from gcon.methods.moments import Moments
from gcon_lab.methods.class_sums import ClassSumsMethod
from gcon_lab.methods.convex import GaussianObjectiveMethod, OutputPerturbationMethod
from gcon_lab.methods.dp_sgd import DPSGD
from gcon_lab.methods.dpgcn import DPGCN
from gcon_lab.methods.gap import GAP
from gcon_lab.methods.gcn import GCN
from gcon_lab.methods.gpr_gnn import GPRGNN
from gcon_lab.methods.lpgnet import LPGNet
from gcon_lab.methods.mlp import MLP
from gcon_lab.methods.progap import ProGAP
from gcon_lab.methods.self_training import SelfTraining
from gcon_lab.methods.self_training_rounds import SelfTrainingRounds

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
    "GaussianObjectiveMethod",
    "LPGNet",
    "Moments",
    "MomentsWithoutEdges",
    "OutputPerturbationMethod",
    "ProGAP",
    "SelfTraining",
    "SelfTrainingRounds",
]

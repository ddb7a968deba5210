"""Private edges wherever they lie (memory, disk, cluster), and the kernels that walk over them and add them up."""

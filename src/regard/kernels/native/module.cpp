// The Python module regard.kernels._native.

#include "binding.h"
#include "kernels.h"

static PyMethodDef methods[] = {
    method<quantize_rows>("quantize_rows"),
    method<attend_step>("attend_step"),
    method<attend_step, true>("attend_step_unlocked"),
    method<finish_rows>("finish_rows"),
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Kernels in C++.", -1, methods, nullptr, nullptr, nullptr,
    nullptr};

PyMODINIT_FUNC PyInit__native() { return PyModule_Create(&definition); }

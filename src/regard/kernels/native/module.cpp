// The Python module regard.kernels._native.

#include "binding.h"
#include "kernels.h"
#include "threads.h"

static PyMethodDef methods[] = {
    method<use_openmp>("use_openmp"),
    method<quantize_rows>("quantize_rows"),
    method<attend_step>("attend_step"),
    method<attend_step, true>("attend_step_unlocked"),
    method<finish_rows>("finish_rows"),
    method<has_dot_instructions>("has_dot_instructions"),
    method<step_blocks, true>("step_blocks"),
    method<attend_additive, true>("attend_additive"),
    method<additive_energies, true>("additive_energies"),
    method<additive_slopes, true>("additive_slopes"),
    method<gru_gates>("gru_gates"),
    method<gru_gates_gradient>("gru_gates_gradient"),
    method<gru_state_gradient>("gru_state_gradient"),
    method<gru_state>("gru_state"),
    method<gru_step>("gru_step"),
    method<sum_maxout>("sum_maxout"),
    method<multiply_panels, true>("multiply_panels"),
    method<gru_sequence, true>("gru_sequence"),
    method<project_values, true>("project_values"),
    method<decoder_step, true>("decoder_step"),
    method<log_softmax_rows, true>("log_softmax_rows"),
    method<argmax_rows>("argmax_rows"),
    method<top_sums, true>("top_sums"),
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Kernels in C++.", -1, methods, nullptr, nullptr, nullptr,
    nullptr};

PyMODINIT_FUNC PyInit__native() { return PyModule_Create(&definition); }

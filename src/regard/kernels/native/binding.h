// Makes a Python function of a C++ function whose arguments are pointers and numbers.
//
// Python passes an address (`Tensor.data_ptr()`, 0 for none) for a pointer. Nothing is checked here:
// the callers in Python check types, shapes and strides. A result is a whole number, or nothing.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

template <typename T>
T converted(PyObject* value) {
    if constexpr (std::is_pointer_v<T>) {
        return static_cast<T>(PyLong_AsVoidPtr(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        return static_cast<T>(PyFloat_AsDouble(value));
    } else {
        return static_cast<T>(PyLong_AsLongLong(value));
    }
}

// With `releases_lock`, other Python threads run meanwhile. Handing the lock over takes longer than
// a small function, and two threads of small functions would wait for each other all the time.
template <auto function, bool releases_lock>
struct Binding;

template <typename Result, typename... Args, Result (*function)(Args...), bool releases_lock>
struct Binding<function, releases_lock> {
    static PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
        if (count != static_cast<Py_ssize_t>(sizeof...(Args))) {
            return PyErr_Format(PyExc_TypeError, "expected %zu arguments", sizeof...(Args));
        }
        return call_with(arguments, std::index_sequence_for<Args...>{});
    }

    template <std::size_t... I>
    static PyObject* call_with(PyObject* const* arguments, std::index_sequence<I...>) {
        const std::tuple<Args...> values{converted<Args>(arguments[I])...};
        if (PyErr_Occurred()) return nullptr;
        int64_t result = 0;
        const auto run = [&] {
            if constexpr (std::is_void_v<Result>) {
                std::apply(function, values);
            } else {
                result = std::apply(function, values);
            }
        };
        if constexpr (releases_lock) {
            Py_BEGIN_ALLOW_THREADS
            run();
            Py_END_ALLOW_THREADS
        } else {
            run();
        }
        if constexpr (!std::is_void_v<Result>) return PyLong_FromLongLong(result);
        Py_RETURN_NONE;
    }
};

template <auto function, bool releases_lock = false>
PyMethodDef method(const char* name) {
    const auto call = &Binding<function, releases_lock>::call;
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL,
            nullptr};
}

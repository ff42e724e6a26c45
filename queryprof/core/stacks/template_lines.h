/* Lines of Jinja2's templates. Jinja2 compiles a template to code. The code's file is the template,
 * but its lines are the lines of the generated Python. debug_info in the code's globals maps the
 * lines, in ascending order: "1=10&4=17" means that line 1 of the template is line 10 of the Python
 * (https://jinja.palletsprojects.com/en/stable/api/#jinja2.Environment.compile). */
#pragma once

#include <Python.h>
#include <stdint.h>

/* Returns the debug_info of a template's code (borrowed from the globals), or NULL if the code is
 * not a template's. Raises nothing. */
PyObject *qp_template_lines(const PyCodeObject *code, PyObject *globals);

/* Returns the template's line for a line of the generated code; 0 if unknown. */
uint32_t qp_template_line(PyObject *debug_info, uint32_t line);

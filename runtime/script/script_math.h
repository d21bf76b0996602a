/* script_math.h - the elementary functions of script numbers: binary64, the same bits on every machine.
 *
 * libm picks another algorithm on a CPU without FMA, and a result differs in the last bit (a learning rate, then a run). These use only
 * + - * / sqrt, fma and bit operations, so they give one answer everywhere. Errors stay below 1.5 units in the last place;
 * beyond |x| = 1e5 sin and cos are NaN.
 *
 * `pow` itself is defined here too, for the whole program: both engines call it for the operator `^`, and the definition in the
 * executable is the one that the loader binds; the child checks it when it starts.
 */
#ifndef RONDO_SCRIPT_MATH_H
#define RONDO_SCRIPT_MATH_H

double script_exp(double x);
double script_log(double x);
double script_log2(double x);
double script_pow(double x, double y);
double script_sin(double x);
double script_cos(double x);

#endif

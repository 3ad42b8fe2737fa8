// Included before every file of the library in the mode Stepped: step is called before each atomic change.
#ifndef STEPS_H
#define STEPS_H

void step(const volatile void *at);

#define __atomic_store_n(p, value, order) (step(p), __atomic_store_n(p, value, order))
#define __atomic_compare_exchange_n(p, from, to, weak, done, failed) \
    (step(p), __atomic_compare_exchange_n(p, from, to, weak, done, failed))

#endif

// The library's own tests; run them under sanitizers.
#include "check.h"

int main(void) {
    unit_text();
    unit_memory();
    unit_link();
    unit_request();
    unit_ask();
    puts("ok");
    return 0;
}

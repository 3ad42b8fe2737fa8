// A program to run once: what a compiler makes that was not asked for a reactor.
__attribute__((export_name("_start"))) void start(void) {}

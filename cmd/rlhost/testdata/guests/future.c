// An environment of a later ABI, as far as a host can tell: it has that version's marker and exports that nobody knows.
__attribute__((export_name("rl_env_v2"))) void marker(void) {}
__attribute__((export_name("rl_describe_all"))) int describe(int to) { return to; }

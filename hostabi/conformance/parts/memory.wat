;; Memory: the description at 0x400, bindings at 0x2000, mode and number of environments at 0x2f00, state at 0x3000 (16 bytes
;; each: age, seed, waits for its reset), what is given away from 0x10000 on.
(memory (export "memory") 1)
(global $heap (mut i32) (i32.const 0x10000))
(func (export "rl_env_v1"))

;; The marker of a later major version: refused, and the version named.
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
;; include step

(memory (export "memory") 1)
(global $heap (mut i32) (i32.const 0x10000))
(func (export "rl_env_v2"))

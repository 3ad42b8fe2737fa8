;; No marker: not an environment.
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
;; include step

(memory (export "memory") 1)
(global $heap (mut i32) (i32.const 0x10000))

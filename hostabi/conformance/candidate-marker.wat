;; A module that is built for the candidate of version 1 has the marker rl_abi_v1rc: refused, to be built again.
;; include describe
;; include alloc
;; include create
;; include bind
;; include reset
;; include step

(memory (export "memory") 1)
(global $heap (mut i32) (i32.const 0x10000))
(func (export "rl_abi_v1rc"))

;; A guest that is out of memory when the host asks for some.
;; include memory
;; include describe
;; include create
;; include bind
;; include reset
;; include step

(func (export "rl_alloc") (param i32 i32) (result i32) (i32.const 0))
(func (export "rl_free") (param i32 i32))

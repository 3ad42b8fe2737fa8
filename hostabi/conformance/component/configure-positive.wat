;; rl_configure returns 1: a status is 0 or negative, so it has failed.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include start
;; include slot
(func (export "rl_configure") (param i32 i32) (result i32) (i32.const 1))

;; A required export that is not there.
;; include imports
;; include memory
;; include marker
;; include check
;; include configure
;; include manifest
;; include start
;; include slot
(func (export "rl_alloc") (param i32 i32) (result i32) (unreachable))

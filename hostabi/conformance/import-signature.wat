;; An import with other parameters.
(import "rl" "clock_ns" (func (param i32) (result i64)))
;; include guest

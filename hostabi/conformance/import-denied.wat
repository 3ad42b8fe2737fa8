;; An import that the user has not granted.
(import "rl" "clock_ns" (func (result i64)))
;; include guest

;; A function of rl_optional that exists, with other parameters.
(import "rl_optional" "clock_ns" (func (result i32)))
;; include guest

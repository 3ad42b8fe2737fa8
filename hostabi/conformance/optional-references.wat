;; A function of rl_optional that does not exist, with a parameter that is no number.
(import "rl_optional" "launch" (func (param externref)))
;; include guest

;; An import that version 1 does not have.
(import "rl" "launch" (func (param i32)))
;; include guest

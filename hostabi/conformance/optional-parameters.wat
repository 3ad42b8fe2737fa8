;; A function of rl_optional that does not exist, of more than 16 parameters.
(import "rl_optional" "launch" (func (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 )))
;; include guest

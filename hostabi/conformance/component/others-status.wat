;; A negative status of rl_answer ends the run.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (global.set $check (i32.const 44))
  (i32.const -128))

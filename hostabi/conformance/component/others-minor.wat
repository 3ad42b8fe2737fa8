;; A component of ABI 1.1 asks nobody: the word for it is not looked at.
;; include asker
;; include configure
;; include start
;; include slot
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (unreachable))
(data (i32.const 0x406) "\01")
(data (i32.const 0x448) "\00\10")

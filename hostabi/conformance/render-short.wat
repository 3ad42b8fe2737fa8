;; A picture of another size than the description says: the host refuses the picture, and the run goes on.
;; include guest

(data (i32.const 0x444) "\02\00\00\00\04\00\00\00\02\00\00\00")
(func (export "rl_render") (param $batch i32) (param $env i32) (param $mode i32) (param $buf i32) (param $cap i32) (result i32) (i32.const 23))

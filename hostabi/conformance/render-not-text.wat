;; A picture of text that is not UTF-8: the host refuses the picture, and the run goes on.
;; include guest
(data (i32.const 0x444) "\01")
(func (export "rl_render") (param $batch i32) (param $env i32) (param $mode i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 2)) (then (i32.store16 (local.get $buf) (i32.const 0xc3ff))))
  (i32.const 2))

;; rl_save without rl_load: both are exported, or none.
;; include guest

(data (i32.const 0x460) "\03\00\00\00\18\00\00\00")
(func (export "rl_save") (param $batch i32) (param $env i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 20))
    (then
      (i32.store (local.get $buf) (i32.const 3))
      (i32.store offset=4 (local.get $buf) (i32.const 12))
      (memory.copy (i32.add (local.get $buf) (i32.const 8)) (call $state (local.get $env)) (i32.const 12))))
  (i32.const 20))

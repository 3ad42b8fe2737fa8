;; All of an environment's state can be saved: its age, its seed, and whether it waits for its reset. Version 3.
(data (i32.const 0x460) "\03\00\00\00\18\00\00\00")
(func (export "rl_save") (param $batch i32) (param $env i32) (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 20))
    (then
      (i32.store (local.get $buf) (i32.const 3))
      (i32.store offset=4 (local.get $buf) (i32.const 12))
      (memory.copy (i32.add (local.get $buf) (i32.const 8)) (call $state (local.get $env)) (i32.const 12))))
  (i32.const 20))
(func (export "rl_load") (param $batch i32) (param $env i32) (param $buf i32) (param $len i32) (result i32)
  (if (i32.lt_u (local.get $len) (i32.const 8)) (then (return (i32.const -1))))
  (if (i32.ne (i32.load (local.get $buf)) (i32.const 3)) (then (return (i32.const -9)))) ;; RL_STATUS_VERSION
  (if (i32.ne (local.get $len) (i32.const 20)) (then (return (i32.const -1))))
  (memory.copy (call $state (local.get $env)) (i32.add (local.get $buf) (i32.const 8)) (i32.const 12))
  (i32.const 0))

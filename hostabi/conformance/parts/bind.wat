(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (i32.const 0))

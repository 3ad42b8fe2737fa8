(func (export "rl_alloc") (param $size i32) (param $align i32) (result i32)
  (local $at i32)
  (local.set $at (i32.and
    (i32.add (global.get $heap) (i32.sub (local.get $align) (i32.const 1)))
    (i32.sub (i32.const 0) (local.get $align))))
  (global.set $heap (i32.add (local.get $at) (local.get $size)))
  (block $enough
    (loop $more
      (br_if $enough (i32.le_u (global.get $heap) (i32.shl (memory.size) (i32.const 16))))
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (return (i32.const 0))))
      (br $more)))
  (local.get $at))
(func (export "rl_free") (param i32 i32))

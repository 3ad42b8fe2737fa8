;; More than 256 arguments.
;; include memory
;; include head
;; include tensors
;; include alloc
;; include create
;; include bind
;; include reset
;; include step
;; An argument's name is the letter a and its number in three digits; then come all records of arguments, and the strings.
(func (export "rl_describe") (param $config i32) (param $len i32) (param $buf i32) (param $cap i32) (result i32)
  (local $k i32) (local $at i32) (local $to i32) (local $all i32)
  (local.set $all (i32.add (i32.const 0x3a0) (i32.mul (global.get $arguments) (i32.const 53))))
  (if (i32.lt_u (local.get $cap) (local.get $all)) (then (return (local.get $all))))
  (memory.fill (local.get $buf) (i32.const 0) (local.get $all))
  (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x380))
  (local.set $at (i32.add (local.get $buf) (i32.add (i32.const 0x380) (i32.mul (global.get $arguments) (i32.const 48)))))
  (memory.copy (local.get $at) (i32.const 0xc00) (i32.const 32))
  (loop $next
    (local.set $to (i32.add (i32.add (local.get $at) (i32.const 32)) (i32.mul (local.get $k) (i32.const 5))))
    (i32.store8 (local.get $to) (i32.const 97))
    (i32.store8 offset=1 (local.get $to) (i32.add (i32.const 48) (i32.div_u (local.get $k) (i32.const 100))))
    (i32.store8 offset=2 (local.get $to) (i32.add (i32.const 48) (i32.rem_u (i32.div_u (local.get $k) (i32.const 10)) (i32.const 10))))
    (i32.store8 offset=3 (local.get $to) (i32.add (i32.const 48) (i32.rem_u (local.get $k) (i32.const 10))))
    (local.set $to (i32.add (local.get $buf) (i32.add (i32.const 0x380) (i32.mul (local.get $k) (i32.const 48)))))
    (i32.store (local.get $to) (i32.sub (i32.add (i32.add (local.get $at) (i32.const 32)) (i32.mul (local.get $k) (i32.const 5))) (local.get $at)))
    (i32.store offset=8 (local.get $to) (i32.const 4)) ;; a text
    (local.set $k (i32.add (local.get $k) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $k) (global.get $arguments))))
  (local.get $all))
(global $arguments i32 (i32.const 257))
(data (i32.const 0x428) "\01\01\00\00")
(data (i32.const 0x42c) "\b0\33\00\00\25\05\00\00")

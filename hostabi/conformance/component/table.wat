;; The table is lines key=value, sorted by key; nested keys are joined with dots, elements of lists with commas, strings stand as they are.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include manifest
;; include start
;; include slot
(data (i32.const 0x3440) "a.b=true\0akey=two words\0alist=1,2,3\0a")
(func (export "rl_configure") (param $text i32) (param $len i32) (result i32)
  (local $i i32)
  (call $same (i32.const 1) (local.get $len) (i32.const 34))
  (loop $each
    (call $same (i32.const 2) (i32.load8_u (i32.add (local.get $text) (local.get $i))) (i32.load8_u offset=0x3440 (local.get $i)))
    (br_if $each (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $len))))
  (i32.const 0))

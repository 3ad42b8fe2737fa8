;; A manifest with a request and questions to others, in the place of manifest.
;; 0x400: head
(data (i32.const 0x400) "`\00\00\00\01\00\02\00\00\00\00\00\00\00\00\00(\00\18\00@\00@\00\02\00\00\00\01\00\00\00\00\00\00\00 \01\00\00\cf\00\00\00\00\00\00\00\01\00\00\00\08\00\00\00\0a\00\00\00#\00\00\00\01\00\00\00\18\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x460: out
(data (i32.const 0x460) "'\00\00\00+\00\00\006\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x488: note
(data (i32.const 0x488) "@\00\00\00E\00\00\00J\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4b0: in
(data (i32.const 0x4b0) "_\00\00\00b\00\00\00m\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4d8: the request tell
(data (i32.const 0x4d8) "\7f\00\00\00\84\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4f0: the ask total
(data (i32.const 0x4f0) "\91\00\00\00\97\00\00\00\a2\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x508: the ask level
(data (i32.const 0x508) "\b8\00\00\00\be\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x520: strings
(data (i32.const 0x520) "\00others\001\00a guest that asks others\00MIT\00out\00trajectory\00what came\00note\00note\00numbers of the guest\00in\00trajectory\00looks at no block\00tell\00asks another\00total\00of another\00n integer, name text?\00level\00has no arguments\00")
(func (export "rl_manifest") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x1ef))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x1ef))))
  (i32.const 0x1ef))

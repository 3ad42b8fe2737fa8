;; A manifest with requests, in the place of manifest.
;; 0x400: head
(data (i32.const 0x400) "`\00\00\00\01\00\01\00\00\00\00\00\00\00\00\00(\00\18\00@\00@\00\02\00\00\00\01\00\00\00\00\00\00\00\08\01\00\00\bf\00\00\00\00\00\00\00\01\00\00\00\07\00\00\00\09\00\00\00\1f\00\00\00\02\00\00\00\18\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x460: out
(data (i32.const 0x460) "#\00\00\00'\00\00\002\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x488: note
(data (i32.const 0x488) "<\00\00\00A\00\00\00F\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4b0: in
(data (i32.const 0x4b0) "[\00\00\00^\00\00\00i\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4d8: the request ask
(data (i32.const 0x4d8) "{\00\00\00\7f\00\00\00\93\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x4f0: the request tell
(data (i32.const 0x4f0) "\a9\00\00\00\ae\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
;; 0x508: strings
(data (i32.const 0x508) "\00asked\001\00a guest that is asked\00MIT\00out\00trajectory\00what came\00note\00note\00numbers of the guest\00in\00trajectory\00looks at no block\00ask\00comes back as it is\00n integer, name text?\00tell\00has no arguments\00")
(func (export "rl_manifest") (param $buf i32) (param $cap i32) (result i32)
  (if (i32.ge_u (local.get $cap) (i32.const 0x1c7))
    (then (memory.copy (local.get $buf) (i32.const 0x400) (i32.const 0x1c7))))
  (i32.const 0x1c7))

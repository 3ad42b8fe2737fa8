;; Box actions are of f32: other types wait for a feature.
;; include guest
(data (i32.const 0x4ac) "\00\00\00\00") ;; n
(data (i32.const 0x4a4) "\00\00\00\00") ;; low
(data (i32.const 0x4a8) "\00\00\80\3f") ;; high

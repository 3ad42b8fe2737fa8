;; A picture has rank 3.
;; include guest
(data (i32.const 0x508) "\c4\01\00\00") ;; flags
(data (i32.const 0x507) "\02") ;; rank
(data (i32.const 0x50c) "\01\00\00\00") ;; shape
(data (i32.const 0x510) "\02\00\00\00") ;; shape

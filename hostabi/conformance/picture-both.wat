;; A picture has one order of its axes.
;; include guest
(data (i32.const 0x508) "\c4\03\00\00") ;; flags
(data (i32.const 0x507) "\03") ;; rank
(data (i32.const 0x50c) "\01\00\00\00") ;; shape
(data (i32.const 0x510) "\02\00\00\00") ;; shape
(data (i32.const 0x514) "\03\00\00\00") ;; shape

;; A scale that is negative.
;; include guest
(data (i32.const 0x53c) "\00\00\80\bf") ;; scale

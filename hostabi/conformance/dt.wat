;; A step may say how many seconds of simulated time it takes.
;; include guest
(data (i32.const 0x478) "\0a\d7\23\3c")                                             ;; 0.01

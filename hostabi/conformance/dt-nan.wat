;; The simulated time of a step is a finite number that is not negative.
;; include guest
(data (i32.const 0x478) "\00\00\c0\7f")

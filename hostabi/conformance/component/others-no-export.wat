;; Questions to others need rl_answer.
;; include asker
;; include asksone

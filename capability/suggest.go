package capability

// Closest returns the candidate that a mistyped word most likely meant, or ""
// when none is near enough to be worth saying.
func Closest(word string, candidates []string) string {
	best, most := "", len(word)/3+1
	for _, c := range candidates {
		if d := distance(word, c, most); d <= most {
			best, most = c, d-1
		}
		if most < 0 {
			break
		}
	}
	return best
}

// distance counts the edits between two words (insert, delete, replace, swap of
// neighbours), or returns more than limit when their lengths alone need that many.
func distance(a, b string, limit int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > limit {
		return limit + 1
	}
	prev2, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}

package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/core/fleet"
	"sluice/providers/redis"
)

func queues(prefix string, names ...string) []fleet.Queue {
	var out []fleet.Queue
	for _, n := range names {
		out = append(out, fleet.Queue{Name: n, Source: fleet.Source{Kind: fleet.SourceRedis, Key: prefix + "queue:" + n, Rows: true}})
	}
	return out
}

func depths(states []fleet.QueueState) []int {
	var out []int
	for _, s := range states {
		out = append(out, s.Depth)
	}
	return out
}

func TestCountsListsInTheOrderAskedAndAMissingListAsEmpty(t *testing.T) {
	t.Parallel()
	url, p := shared(t), prefix()
	db := ask(t, url)
	db.RPush(t.Context(), p+"queue:ocr", "a", "b", "c")
	db.RPush(t.Context(), p+"queue:images", "d")
	t.Cleanup(func() { db.Del(context.Background(), p+"queue:ocr", p+"queue:images") })

	got, err := open(t, url).Read(t.Context(), queues(p, "ocr", "media", "images"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{3, 0, 1}; !slices.Equal(depths(got), want) {
		t.Errorf("depths are %v, want %v", depths(got), want)
	}
	for i, name := range []string{"ocr", "media", "images"} {
		if got[i].Name != name || got[i].Unknown != "" || !got[i].NoAge {
			t.Errorf("state %d is %+v, want %s, known and without age", i, got[i], name)
		}
	}
}

func TestAQueueWithoutKeyIsTheListNamedAfterIt(t *testing.T) {
	t.Parallel()
	url, name := shared(t), prefix()
	db := ask(t, url)
	db.RPush(t.Context(), "queue:"+name, "a", "b")
	t.Cleanup(func() { db.Del(context.Background(), "queue:"+name) })
	got, err := open(t, url).Read(t.Context(), []fleet.Queue{{Name: name}})
	if err != nil || got[0].Depth != 2 {
		t.Errorf("read %+v, %v, want depth 2", got, err)
	}
}

func TestAKeyOfAnotherTypeMakesOnlyItsQueueUnknown(t *testing.T) {
	t.Parallel()
	url, p := shared(t), prefix()
	db := ask(t, url)
	db.HSet(t.Context(), p+"queue:ocr", "field", "value")
	db.RPush(t.Context(), p+"queue:images", "d")
	t.Cleanup(func() { db.Del(context.Background(), p+"queue:ocr", p+"queue:images") })
	got, err := open(t, url).Read(t.Context(), queues(p, "ocr", "images"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got[0].Unknown, p+"queue:ocr is not a list") {
		t.Errorf("ocr is %+v, want it unknown because its key is no list", got[0])
	}
	if got[1].Unknown != "" || got[1].Depth != 1 {
		t.Errorf("images is %+v, want depth 1", got[1])
	}
	if got, err := open(t, url).Read(t.Context(), queues(p, "ocr")); err != nil || got[0].Unknown == "" {
		t.Errorf("the only queue, of another type, reads %+v, %v, want it unknown", got, err)
	}
}

func TestAListOfAMillionIsCountedAtOnce(t *testing.T) {
	t.Parallel()
	url, p := shared(t), prefix()
	db := ask(t, url)
	t.Cleanup(func() { db.Unlink(context.Background(), p+"queue:bulk") })
	fill := `for i=1,1000 do local t={} for j=1,1000 do t[j]=j end redis.call('RPUSH', KEYS[1], unpack(t)) end return 1`
	if err := db.Eval(t.Context(), fill, []string{p + "queue:bulk"}).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, url).Read(t.Context(), queues(p, "bulk")); err != nil || got[0].Depth != 1_000_000 {
		t.Errorf("read %+v, %v, want depth 1000000", got, err)
	}
}

func TestNoQueuesMeansNoCall(t *testing.T) {
	t.Parallel()
	if got, err := open(t, "redis://127.0.0.1:1/0").Read(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("read nothing: %v, %v", got, err)
	}
}

func TestAnACLUserWithAPasswordCountsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	addr := serve(t, "user default off", "user sluice on >p%40ss:w@rd/ ~queue:* +llen")
	url := "redis://sluice:p%2540ss%3Aw%40rd%2F@" + addr + "/0"
	got, err := open(t, url).Read(t.Context(), []fleet.Queue{{Name: "ocr"}, {Name: "secret", Source: fleet.Source{Key: "private"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Unknown != "" || got[0].Depth != 0 {
		t.Errorf("ocr is %+v, want it empty", got[0])
	}
	if !strings.Contains(got[1].Unknown, "grant it ~private") {
		t.Errorf("secret is %+v, want it unknown and what to grant", got[1])
	}
}

func TestRefusedPasswordsAreErrorsThatDoNotShowThem(t *testing.T) {
	t.Parallel()
	addr := serve(t, "requirepass right")
	for name, url := range map[string]string{
		"wrong password": "redis://:hunter2secret@" + addr,
		"no password":    "redis://" + addr,
		"unknown user":   "redis://nobody:hunter2secret@" + addr,
	} {
		_, err := open(t, url).Read(t.Context(), queues("", "ocr"))
		if !errors.Is(err, fleet.ErrAuth) {
			t.Errorf("%s: %v, want %v", name, err, fleet.ErrAuth)
		} else if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "put the current ones") {
			t.Errorf("%s: %q shows the password, or not what to do", name, err)
		}
	}
}

func TestAnUnusableURLIsAnErrorThatDoesNotShowIt(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "hunter2", "http://:hunter2@host", "redis://:hunter2/x@host:6379", "redis://:hunter2@host:port", "redis://u:hunter2#x@host:6379/0",
		"redis://:hunter2@", "redis://:hunter2@host:6379/zero", "redis://:hunter2@host:6379/0?colour=red", "redis://:hunter2%zz@host",
	} {
		_, err := open(t, url).Read(t.Context(), queues("", "ocr"))
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "redis url") && !strings.Contains(err.Error(), "redis cannot be reached") {
			t.Errorf("url %q: %v, want an error about the redis url that does not repeat it", url, err)
		}
	}
}

func TestAServerThatIsNotThereIsAnErrorThatSaysWhatToCheck(t *testing.T) {
	t.Parallel()
	_, err := open(t, "redis://:hunter2@"+freeAddr(t)).Read(t.Context(), queues("", "ocr"))
	if !errors.Is(err, fleet.ErrUnavailable) || !strings.Contains(err.Error(), "check that it runs") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("read: %v, want %v with advice", err, fleet.ErrUnavailable)
	}
}

func TestASilentServerIsGivenUpAtTheDeadline(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err = open(t, "redis://"+l.Addr().String()).Read(ctx, queues("", "ocr"))
	if err == nil || time.Since(begun) > 2*time.Second {
		t.Errorf("read ended after %v with %v, want an error at the deadline", time.Since(begun), err)
	}
}

func TestAChangedPasswordIsReadAgainOnce(t *testing.T) {
	t.Parallel()
	addr := serve(t, "requirepass first")
	db := ask(t, "redis://:first@"+addr)
	var reads atomic.Int32
	var password atomic.Value
	password.Store("first")
	c := redis.New(func(context.Context) (string, error) {
		reads.Add(1)
		return fmt.Sprintf("redis://:%s@%s", password.Load(), addr), nil
	})
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Read(t.Context(), queues("", "ocr")); err != nil {
		t.Fatal(err)
	}
	db.ConfigSet(t.Context(), "requirepass", "second")
	db.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	password.Store("second")
	if _, err := c.Read(t.Context(), queues("", "ocr")); err != nil {
		t.Errorf("read after the password changed: %v", err)
	}
	if reads.Load() != 2 {
		t.Errorf("the secret was read %d times, want 2", reads.Load())
	}
	password.Store("third")
	db2 := ask(t, "redis://:second@"+addr)
	db2.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	db2.ConfigSet(t.Context(), "requirepass", "fourth")
	if _, err := c.Read(t.Context(), queues("", "ocr")); !errors.Is(err, fleet.ErrAuth) || reads.Load() != 3 {
		t.Errorf("read with a wrong secret: %v after %d readings, want %v after 3", err, reads.Load(), fleet.ErrAuth)
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	addr := serve(t, "port 0", "tls-port PORT", "tls-cert-file "+certDir+"/cert.pem", "tls-key-file "+certDir+"/key.pem", "tls-auth-clients no")
	if got, err := open(t, "rediss://"+addr+"/0").Read(t.Context(), queues("", "ocr")); err != nil || got[0].Unknown != "" {
		t.Errorf("read over TLS: %+v, %v", got, err)
	}
	_, port, _ := net.SplitHostPort(addr)
	if _, err := open(t, "rediss://localhost:"+port+"/0").Read(t.Context(), queues("", "ocr")); err == nil {
		t.Error("a certificate of another name was accepted")
	}
}

func TestAClusterIsReadWithoutBracesInTheKeys(t *testing.T) {
	t.Parallel()
	one, two := serve(t, "cluster-enabled yes"), serve(t, "cluster-enabled yes")
	a, b := ask(t, "redis://"+one), ask(t, "redis://"+two)
	a.ClusterAddSlotsRange(t.Context(), 0, 8191)
	b.ClusterAddSlotsRange(t.Context(), 8192, 16383)
	host, port, _ := net.SplitHostPort(two)
	a.ClusterMeet(t.Context(), host, port)
	until(t, "the cluster is whole", func() bool {
		return strings.Contains(a.ClusterInfo(t.Context()).Val(), "cluster_state:ok") && strings.Contains(b.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprint("q", i))
	}
	qs := queues("", names...)
	nodes := map[bool]int{}
	for i, q := range qs {
		inOne := a.ClusterKeySlot(t.Context(), q.Source.Key).Val() < 8192
		nodes[inOne]++
		db := b
		if inOne {
			db = a
		}
		for range i {
			db.LPush(t.Context(), q.Source.Key, rand.Text())
		}
	}
	if nodes[true] == 0 || nodes[false] == 0 {
		t.Fatal("all keys are on one node: the test shows nothing")
	}
	for _, url := range []string{"redis://" + one + "?cluster=true", "redis://" + one + "," + two, "redis://" + two + "/0?addr=" + one} {
		got, err := open(t, url).Read(t.Context(), qs)
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; err != nil || !slices.Equal(depths(got), want) {
			t.Errorf("%s: depths are %v (%v), want %v", url, depths(got), err, want)
		}
	}
}

package demo

import (
	"context"
	"fmt"
)

// moreJobs is how many thumbnails are added at once while a run goes on.
const moreJobs = 50

// work is what a run makes thumbnails of, and those that it was asked to make.
type work struct {
	images []string
	passes int // of each
	jobs   []Thumbnail
}

// findImages finds the user's images; none, and no error, where there is no folder of them.
func (r *run) findImages() ([]string, error) {
	if r.Dir == "" {
		return nil, nil
	}
	images, leftOut, err := findImages(r.Dir)
	for i, why := range leftOut {
		if i == leftOutTold {
			r.Say("Left out: %d more", len(leftOut)-i)
			break
		}
		r.Say("Left out: %v", why)
	}
	return images, err
}

// plan says what the burst is made of.
func (r *run) plan(images []string) (work, error) {
	n := r.Jobs
	if r.Dir == "" {
		var err error
		if images, err = makeImages(r.home.images(), (max(n, 1)+len(widths)-1)/len(widths)); err != nil {
			return work{}, err
		}
	}
	if all := len(images) * len(widths); n == 0 || n > all {
		n = all
	}
	seconds := workEach(r.Work, n)
	passes, err := effort(images, r.home.path("trial.jpg"), seconds)
	if err != nil {
		return work{}, err
	}
	w := work{images: images, passes: passes}
	w.more(r.home.thumbnails(), n)
	r.Say("%d thumbnails to make, of %d images, about %.1f s of work each", n, len(images), seconds)
	return w, nil
}

// more adds n thumbnails, and returns them. After the last image it begins with the first again.
func (w *work) more(target string, n int) []Thumbnail {
	old := len(w.jobs)
	for i := range n {
		job := nthThumbnail(w.images, target, old+i)
		job.Passes = w.passes
		w.jobs = append(w.jobs, job)
	}
	return w.jobs[old:]
}

// add puts more work into the queue.
func (r *run) add(ctx context.Context, _ string) (string, error) {
	ids, err := r.stack.enqueue(ctx, r.db, rows(r.work.more(r.home.thumbnails(), moreJobs)))
	r.ids = append(r.ids, ids...)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Put %d more jobs into queue %s", len(ids), queueName), nil
}

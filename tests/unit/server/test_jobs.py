"""Jobs outlive the server that ran them."""

from dataclasses import replace

import pytest

from omnigraph.errors import ErrorCode, InvalidInputError, LimitExceededError, NotFoundError
from omnigraph.server.jobs import JobCancelled, JobFolder, JobLimits, JobState
from tests.support.clocks import FakeClock


@pytest.fixture
def make(tmp_path):
    return lambda: JobFolder(tmp_path / "jobs", FakeClock())


def new(jobs):
    return jobs.new("world", "ada", key=None, request={"mode": "append"}, digest="0")


def test_what_a_server_left_is_done_if_it_landed_and_interrupted_if_not(make):
    jobs = make()
    landed, lost, done = new(jobs), new(jobs), new(jobs)
    jobs.put(replace(landed, state=JobState.RUNNING))
    jobs.put(replace(done, state=JobState.DONE, result={"commit_id": "x"}))

    later = make()
    found = {landed.job_id: {"commit_id": "y"}}
    assert later.settle_interrupted(lambda job: found.get(job.job_id), graphs=["world"]) == 2

    assert later.find(landed.job_id).state is JobState.DONE
    assert later.find(landed.job_id).result == {"commit_id": "y"}
    assert later.find(lost.job_id).state is JobState.INTERRUPTED
    assert later.find(done.job_id).result == {"commit_id": "x"}


def test_a_cancelled_job_ends_before_it_commits_and_not_after(make):
    jobs = make()
    job = new(jobs)
    jobs.report(job.job_id, "read", 1, 2)
    assert jobs.find(job.job_id).progress == {"read": [1, 2]}
    jobs.cancel(job.job_id)
    with pytest.raises(JobCancelled):
        jobs.report(job.job_id, "check", 0, 1)
    jobs.report(job.job_id, "commit", 1, 1)


@pytest.mark.parametrize("job_id", ["", "../tokens", "0" * 26, "x" * 5000])
def test_no_id_leads_to_another_file(make, job_id):
    with pytest.raises(NotFoundError):
        make().find(job_id)


def test_a_job_whose_fate_cannot_be_found_out_is_failed_and_others_are_settled(make):
    jobs = make()
    mismatch, lost = new(jobs), new(jobs)

    def landed(job):
        if job.job_id == mismatch.job_id:
            message = "the key 'k' was used for another request"
            raise InvalidInputError(message, code=ErrorCode.REQUEST_MISMATCH)

    later = make()
    assert later.settle_interrupted(landed, graphs=["world"]) == 2

    found = later.find(mismatch.job_id)
    assert found.state is JobState.FAILED
    assert (found.problem or {})["code"] == "request_mismatch"
    assert later.find(lost.job_id).state is JobState.INTERRUPTED


def test_a_job_of_a_graph_that_is_not_served_stays_as_it_is(make):
    job = new(make())
    later = make()

    assert later.settle_interrupted(lambda _: None, graphs=["other"]) == 0
    assert later.find(job.job_id).state is JobState.QUEUED
    assert make().settle_interrupted(lambda _: None, graphs=["world"]) == 1


def test_a_key_names_one_job_until_that_is_to_be_repeated(make):
    jobs = make()
    asked = {"key": "k", "request": {"mode": "append"}, "digest": "0"}
    first, is_new = jobs.once("world", "ada", **asked)
    assert (is_new, jobs.once("world", "ada", **asked)) == (True, (first, False))
    assert jobs.once("world", "eve", **asked)[0] != first
    with pytest.raises(InvalidInputError, match="another request"):
        jobs.once("world", "ada", **{**asked, "digest": "1"})
    jobs.put(replace(first, state=JobState.FAILED))
    again, is_new = jobs.once("world", "ada", **asked)
    assert (is_new, again.job_id != first.job_id) == (True, True)


def test_a_full_queue_refuses_jobs_and_no_actor_fills_it_alone(tmp_path):
    jobs = JobFolder(tmp_path / "jobs", FakeClock(), JobLimits(unfinished=4))
    own = [new(jobs), new(jobs)]
    with pytest.raises(LimitExceededError, match="2 of them of this actor") as busy:
        new(jobs)
    assert busy.value.code is ErrorCode.TOO_BUSY
    others = [jobs.new("world", actor, key=None, request={}, digest="0") for actor in "xy"]
    with pytest.raises(LimitExceededError, match="4 loads"):
        jobs.new("world", "z", key=None, request={}, digest="0")
    for job in (*own, *others):
        jobs.put(replace(job, state=JobState.DONE))
    assert new(jobs)


def test_records_of_ended_jobs_are_deleted_by_number_and_by_age(tmp_path):
    clock = FakeClock()
    jobs = JobFolder(tmp_path / "jobs", clock, JobLimits(kept=3, kept_days=1))
    running = new(jobs)
    ended = []
    for _ in range(4):
        ended.append(new(jobs))
        jobs.rejects(ended[-1].job_id).write_text("{}")
        jobs.put(replace(ended[-1], state=JobState.DONE))
    kept = [job.job_id for job in (*ended[:0:-1], running)]
    assert [job.job_id for job in jobs.list("world")] == kept
    assert not jobs.rejects(ended[0].job_id).exists()
    with pytest.raises(NotFoundError):
        jobs.find(ended[0].job_id)

    clock.sleep(2 * 86_400)
    latest = new(jobs)
    assert [job.job_id for job in jobs.list("world")] == [latest.job_id, running.job_id]

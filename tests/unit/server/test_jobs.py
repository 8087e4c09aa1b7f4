"""Jobs outlive the server that ran them."""

from dataclasses import replace

import pytest

from omnigraph.errors import NotFoundError
from omnigraph.server.jobs import JobCancelled, JobFolder, JobState
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
    assert later.settle_interrupted(lambda job: found.get(job.job_id)) == 2

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

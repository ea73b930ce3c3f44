// graphile-worker for `mailslot-peers`: makes its schema, enqueues, or works and says every 5 ms how many jobs it handled.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";

const connectionString = process.env.DATABASE_URL;
// It would write a line for each job.
const logger = new Logger(() => () => {});
const payload = () => ({ sent_ns: 1_000_000_000_000, filler: "x".repeat(220) });
const [command, ...values] = process.argv.slice(2);

async function enqueue(callers, seconds) {
  const pgPool = new pg.Pool({ connectionString, max: callers });
  const utils = await makeWorkerUtils({ pgPool, logger });
  let done = 0;
  let over = false;
  const call = async () => {
    while (!over) {
      await utils.addJob("work", payload());
      done += 1;
    }
  };
  const calls = Array.from({ length: callers }, call);
  const wait = (s) => new Promise((resolve) => setTimeout(resolve, s * 1000));
  await wait(seconds / 4);
  const [since, before] = [performance.now(), done];
  await wait(seconds);
  const messages = done - before;
  const per_second = messages / ((performance.now() - since) / 1000);
  over = true;
  await Promise.all(calls);
  await utils.release();
  await pgPool.end();
  console.log(JSON.stringify({ messages, per_second }));
}

async function fill(jobs) {
  const utils = await makeWorkerUtils({ connectionString, logger });
  for (let begin = 0; begin < jobs; begin += 1000) {
    const count = Math.min(1000, jobs - begin);
    await utils.addJobs(Array.from({ length: count }, () => ({ identifier: "work", payload: payload() })));
  }
  await utils.release();
}

async function work() {
  let handled = 0;
  setInterval(() => process.stdout.write(`${handled}\n`), 5);
  const runner = await run({
    preset: {
      worker: {
        connectionString,
        logger,
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    parsedCronItems: [],
    taskList: {
      work: () => {
        handled += 1;
      },
    },
  });
  await runner.promise;
}

if (command === "migrate") {
  await runMigrations({ connectionString, logger });
} else if (command === "enqueue") {
  await enqueue(Number(values[0]), Number(values[1]));
} else if (command === "fill") {
  await fill(Number(values[0]));
} else {
  await work();
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import {
  type Harm,
  logNothing,
  namePart,
  openPlace,
  type Place,
  records,
  testHarms,
} from './place.ts'

let place: Place
beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place?.close())

/** The damage that can be done to the form of a table. */
const forms: readonly Harm[] = [
  {
    what: 'a trigger on a collection',
    harm: [
      `CREATE FUNCTION app_1.spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
      `CREATE TRIGGER spoil BEFORE INSERT ON app_1.c_2 FOR EACH ROW EXECUTE FUNCTION app_1.spoil()`,
    ],
    named: { what: 'function app_1.spoil()' },
  },
  {
    what: 'a trigger by a function of PostgreSQL',
    harm: `CREATE TRIGGER still BEFORE UPDATE ON app_1.c_2 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
    named: namePart('c_2', 'trigger still', records),
    mended: true,
  },
  {
    what: 'a trigger on the log',
    harm: `CREATE TRIGGER still BEFORE UPDATE ON system.block FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()`,
    named: namePart('block', 'trigger still', { chain: 'system' }),
  },
  {
    what: 'an event trigger',
    harm: [
      `CREATE FUNCTION public.spy() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`,
      `CREATE EVENT TRIGGER spy ON ddl_command_end EXECUTE FUNCTION public.spy()`,
    ],
    named: { what: 'event trigger spy' },
  },
  {
    what: 'an event trigger that was made a part of an extension',
    harm: [
      `CREATE FUNCTION public.spy() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`,
      `CREATE EVENT TRIGGER spy ON ddl_command_end EXECUTE FUNCTION public.spy()`,
      'ALTER EXTENSION plpgsql ADD FUNCTION public.spy()',
      'ALTER EXTENSION plpgsql ADD EVENT TRIGGER spy',
    ],
    named: { what: 'event trigger spy' },
  },
  {
    what: 'a function in the catalog of PostgreSQL',
    harm: `CREATE FUNCTION pg_catalog.sha256(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT ''::bytea $$`,
    named: { what: 'function sha256(text)' },
  },
  {
    what: 'a built-in function that does something else',
    harm: `CREATE OR REPLACE FUNCTION pg_catalog.lower(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT upper($1) $$`,
    named: { what: 'function lower(text)', found: 'one that was changed' },
  },
  {
    what: 'a built-in operator that does something else',
    harm: `UPDATE pg_catalog.pg_operator SET oprcode = 'texteq'::regproc WHERE oid = '~~(text,text)'::regoperator`,
    named: { what: 'operator ~~(text,text)' },
  },
  {
    what: 'a built-in cast that loses something',
    harm: `UPDATE pg_catalog.pg_cast SET castfunc = 'bool(int4)'::regprocedure WHERE castsource = 'int8'::regtype AND casttarget = 'int4'::regtype`,
    named: { what: 'cast from bigint to integer' },
  },
  {
    what: 'a setting by which an acknowledged write is lost in a crash',
    harm: `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`,
    named: { what: 'setting synchronous_commit of the role or database', found: 'off' },
  },
  {
    what: 'a setting of the role by which triggers do not run',
    harm: `DO $$ BEGIN EXECUTE format('ALTER ROLE %I IN DATABASE %I SET session_replication_role = replica', current_user, current_database()); END $$`,
    named: { what: 'setting session_replication_role of the role or database', found: 'replica' },
  },
  {
    what: 'a dropped primary key',
    harm: 'ALTER TABLE app_1.c_2 DROP CONSTRAINT c_2_pkey',
    named: namePart('c_2', 'constraint c_2_pkey', records),
    mended: true,
  },
  {
    what: 'a dropped primary key of the ledger',
    harm: 'ALTER TABLE system.settled_payment DROP CONSTRAINT settled_payment_pkey',
    named: namePart('settled_payment', 'settled_payment_pkey', { chain: 'system' }),
    mended: true,
  },
  {
    what: 'a dropped primary key of the claims',
    harm: 'ALTER TABLE operations.claim DROP CONSTRAINT claim_pkey',
    named: namePart('claim', 'claim_pkey', { schema: 'operations' }),
  },
  {
    what: 'a claim in a state that is none',
    harm: [
      'ALTER TABLE operations.claim DROP CONSTRAINT claim_state',
      `UPDATE operations.claim SET state = 'paid'`,
    ],
    named: namePart('claim', 'claim_state', { schema: 'operations' }),
  },
  {
    what: 'a dropped index',
    harm: 'DROP INDEX app_1.c_2_key',
    named: namePart('c_2', 'index c_2_key', records),
    mended: true,
  },
  {
    what: 'a dropped index of a seller',
    harm: 'DROP INDEX app_1.i_#index',
    named: namePart('c_2', 'index i_', records),
    mended: true,
  },
  {
    what: 'an index over some of the rows only',
    harm: [
      `DROP INDEX app_1.c_2_key`,
      `CREATE INDEX c_2_key ON app_1.c_2 (key) WHERE superseded_by IS NULL AND key <> 's1'`,
    ],
    named: namePart('c_2', 'index c_2_key', records),
    mended: true,
  },
  {
    what: 'an index that nobody defined',
    harm: `CREATE UNIQUE INDEX only_one ON app_1.c_2 (deleted)  WHERE deleted`,
    named: namePart('c_2', 'index only_one', records),
    mended: true,
  },
  {
    what: 'a constraint that refuses records',
    harm: `ALTER TABLE app_1.c_2 ADD CONSTRAINT few CHECK (leaf < 1000000)`,
    named: namePart('c_2', 'constraint few', records),
    mended: true,
  },
  {
    what: 'row security that hides a record',
    harm: `ALTER TABLE app_1.c_2 ENABLE ROW LEVEL SECURITY`,
    named: namePart('c_2', 'kind', { ...records, found: 'table, row security' }),
    mended: true,
  },
  {
    what: 'a policy',
    harm: `CREATE POLICY hide ON app_1.c_2 USING (key <> 's1')`,
    named: namePart('c_2', 'policy hide', records),
    mended: true,
  },
  {
    what: 'a rule',
    harm: `CREATE RULE nothing AS ON DELETE TO app_1.c_2 DO INSTEAD NOTHING`,
    named: namePart('c_2', 'rule nothing', records),
    mended: true,
  },
  {
    what: 'a default',
    harm: `ALTER TABLE operations.claim ALTER COLUMN cap SET DEFAULT 0`,
    named: namePart('claim', 'column cap', { schema: 'operations' }),
  },
  {
    what: 'a column that may be missing',
    harm: `ALTER TABLE app_1.c_2 ALTER COLUMN data DROP NOT NULL`,
    named: namePart('c_2', 'column data', records),
    mended: true,
  },
  {
    what: 'a column of another type',
    harm: `ALTER TABLE app_1.c_2 ALTER COLUMN height TYPE numeric`,
    named: namePart('c_2', 'column height', records),
    mended: true,
  },
  {
    what: 'a column more',
    harm: `ALTER TABLE app_1.c_2 ADD COLUMN more text`,
    named: namePart('c_2', 'column more', records),
    mended: true,
  },
  {
    what: 'a table that a crash would empty',
    harm: `ALTER TABLE app_1.c_2 SET UNLOGGED`,
    named: namePart('c_2', 'kind', { ...records, found: 'table, unlogged' }),
    mended: true,
  },
  {
    what: 'a view in place of a table',
    harm: [
      `ALTER TABLE app_1.c_2 RENAME TO c_2_old`,
      `CREATE VIEW app_1.c_2 AS SELECT * FROM app_1.c_2_old`,
    ],
    named: namePart('c_2', 'kind|column|constraint', records),
  },
  {
    what: 'rows that a table has by inheritance',
    harm: `CREATE TABLE public.more () INHERITS (app_1.c_2)`,
    named: { what: 'table public.more' },
  },
  {
    what: 'an operator that is found before one of PostgreSQL',
    harm: `CREATE OPERATOR public.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)`,
    named: { what: 'operator public.===(text,text)' },
  },
  {
    what: 'a table that nobody knows, beside the operational ones',
    harm: `CREATE TABLE operations.more (id int8)`,
    named: namePart('more', 'column id|kind', { schema: 'operations' }),
  },
  {
    what: 'a dropped operational table',
    harm: `DROP TABLE operations.used_signature`,
    named: namePart('used_signature', '', { schema: 'operations', found: 'none' }),
  },
  {
    what: 'tables of an application that the log does not know',
    harm: [`CREATE SCHEMA app_9`, `CREATE TABLE app_9.c_1 (id int8)`],
    named: { what: 'table app_9.c_1' },
  },
]

describe('damage to the form of tables', () => {
  test('the audit names nothing where nothing was changed', async () => {
    await place.harmed(async (_, config) => {
      expect(await audit(config, logNothing)).toEqual({ equal: true, chains: expect.any(Array) })
    })
  })

  test('the audit names no setting that only tunes, none that our connections set, and no right of a built-in', async () => {
    await place.harmed(async (database, config) => {
      const tunings = [
        'work_mem = 65536',
        'timezone = EST',
        'lock_timeout = 9000',
        'log_duration = on',
      ]
      for (const tuning of tunings)
        await database.execute(
          sql.compiled(
            `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ${tuning}', current_database()); END $$`,
            [],
          ),
        )
      await database.execute(sql`REVOKE EXECUTE ON FUNCTION pg_catalog.pg_sleep FROM PUBLIC`)
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
    })
  })

  test('the audit names a subscription, which writes rows of another server into tables', async () => {
    await place.harmed(async (database, config) => {
      await database.execute(
        sql`CREATE SUBSCRIPTION more CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false, slot_name = NONE)`,
      )
      try {
        const named = { equal: false, difference: { what: 'subscription more' } }
        expect(await audit(config, logNothing)).toMatchObject(named)
      } finally {
        await database.execute(sql`DROP SUBSCRIPTION more`)
      }
    })
  })

  test('the audit passes over what the operator names, and over nothing else', async () => {
    await place.harmed(async (database, config) => {
      for (const statement of [
        'CREATE SCHEMA provider',
        `CREATE FUNCTION provider.log_ddl() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'`,
        'CREATE EVENT TRIGGER log_ddl ON ddl_command_end EXECUTE FUNCTION provider.log_ddl()',
        'REVOKE EXECUTE ON FUNCTION pg_catalog.age(timestamptz) FROM PUBLIC',
        `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET check_function_bodies = off', current_database()); END $$`,
      ])
        await database.execute(sql.compiled(statement, []))
      const trusted: string[] = []
      for (const what of [
        'event trigger log_ddl',
        'function age(timestamp with time zone)',
        'setting check_function_bodies of the role or database',
      ]) {
        expect((await audit(config, logNothing, { trusted })).difference).toMatchObject({ what })
        trusted.push(what)
      }
      expect(await audit(config, logNothing, { trusted })).toMatchObject({ equal: true })
    })
  })

  testHarms(forms, () => place)
})

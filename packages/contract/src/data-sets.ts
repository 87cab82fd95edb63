import { Type } from 'typebox'
import { limits } from './limits.ts'
import { defineContract } from './route.ts'
import {
  AppParams,
  Described,
  extendAppParams,
  Name,
  Nullable,
  StringEnum,
  Success,
  Time,
} from './schemas.ts'

const Kind = StringEnum(['values', 'cidr', 'ip_country'], {
  description:
    'values: inDataset compares with them; cidr: it looks for an address in networks; ip_country: inCountry looks for the country of an address',
})

const dataSet = {
  name: Type.String(),
  kind: Kind,
  count: Type.Integer({ description: 'values, or ranges of addresses that do not touch' }),
  public: Type.Boolean({ description: 'true: queries of others may look into it' }),
  provider: StringEnum(['application', 'operator'], {
    description: 'the one who defined it; sets of the operator are for all applications',
  }),
  updated_at: Nullable(Time),
}

export const DataSet = Type.Object(dataSet, {
  $id: 'DataSet',
  description: 'A named set that inDataset and inCountry look values up in',
})

const NamedParams = extendAppParams({
  name: Described(Name, 'the name of the data set', ['favourites']),
})

export const dataSets = defineContract({
  createDataSet: {
    method: 'POST',
    path: '/api/apps/:app/datasets',
    area: 'Data Sets',
    summary: 'Make a data set for inDataset and inCountry, or replace it as a whole',
    description:
      'Entries of `values` are strings, numbers, true and false; those of `cidr` "network" or "first,last"; those of `ip_country`, of which an application has one, "network,country" or "first,last,country". The entries become a part of the chain, and are never given out again.',
    access: 'Admin',
    shows: 'outcome',
    status: 201,
    params: AppParams,
    takesRecords: true,
    body: Type.Object(
      {
        name: Described(Name, 'its name in queries: `{"id": {"inDataset": "vips"}}`'),
        kind: Kind,
        entries: Type.Array(Type.Unknown(), {
          maxItems: limits.dataSetEntriesMax,
          description:
            'all that it holds from now on: `["st_1", 7]`, `["10.0.0.0/8", "10.0.0.1,10.0.0.9"]` or `["10.0.0.0/8,AT"]`, by its kind',
        }),
        public: Type.Optional(
          Type.Boolean({
            description:
              'true: all who may query may look into it; by default only keys that may Read',
          }),
        ),
      },
      { examples: [{ name: 'favourites', kind: 'values', entries: ['st_1', 'st_3'] }] },
    ),
    reply: Type.Object({
      ...dataSet,
      updated: Type.Boolean({ description: 'true where it replaced a set of this name' }),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'CONFLICT'],
  },
  listDataSets: {
    method: 'GET',
    path: '/api/apps/:app/datasets',
    area: 'Data Sets',
    summary: "List the data sets that an application's queries can look into",
    access: 'Read',
    shows: 'definitions',
    params: AppParams,
    reply: Type.Object({ datasets: Type.Array(DataSet) }),
    errors: ['APPLICATION_NOT_FOUND'],
  },
  getDataSet: {
    method: 'GET',
    path: '/api/apps/:app/datasets/:name',
    area: 'Data Sets',
    summary: 'A data set',
    access: 'Read',
    shows: 'definitions',
    params: NamedParams,
    reply: DataSet,
    errors: ['APPLICATION_NOT_FOUND', 'DATA_SET_NOT_FOUND'],
  },
  deleteDataSet: {
    method: 'DELETE',
    path: '/api/apps/:app/datasets/:name',
    area: 'Data Sets',
    summary: 'Delete a data set of the application',
    access: 'Admin',
    shows: 'outcome',
    params: NamedParams,
    reply: Success,
    errors: ['APPLICATION_NOT_FOUND', 'DATA_SET_NOT_FOUND'],
  },
})

"""Code that a user of the generated Python client would write. The check fails if this program fails."""

import sys
from uuid import UUID

from admin_client import AuthenticatedClient as AdminClient
from admin_client.api.keys import issue_key
from admin_client.api.organisations import create_organisation
from admin_client.models import CreateOrganisationBody, IssuedKey, IssueKeyBody, Organisation
from public_client import AuthenticatedClient
from public_client.api.records import get_shops, get_tags, list_shops
from public_client.api.upload import upload_shops
from public_client.models import Error, ErrorCode, Shop, StoredShop, UploadAnswer, UploadShopsBody

url, admin_url, admin_token = sys.argv[1:]

admin = AdminClient(base_url=admin_url, token=admin_token)
organisation = create_organisation.sync(client=admin, body=CreateOrganisationBody(slug="python"))
assert isinstance(organisation, Organisation), organisation
issued = issue_key.sync(client=admin, body=IssueKeyBody(organisation=organisation.slug))
assert isinstance(issued, IssuedKey), issued

api = AuthenticatedClient(base_url=url, token=issued.key)
shop_id = UUID("5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01")
body = UploadShopsBody(records=[Shop(shop_id=shop_id, name="Corner Bakery", region="GB")])

uploaded = upload_shops.sync(client=api, body=body, idempotency_key="first")
assert isinstance(uploaded, UploadAnswer), uploaded
assert [batch.data.counts.created for batch in uploaded.batches] == [1], uploaded
again = upload_shops.sync_detailed(client=api, body=body, idempotency_key="first")
assert again.parsed == uploaded and again.headers["Idempotency-Replayed"] == "true", again

read = get_shops.sync(shop_id, client=api)
assert isinstance(read, StoredShop) and read.name == "Corner Bakery" and read.is_deleted is False, read
page = list_shops.sync(client=api, limit=10)
assert not isinstance(page, Error) and page is not None and page.records == [read], page

missing = get_tags.sync(shop_id, client=api)
assert isinstance(missing, Error) and missing.code == ErrorCode.RECORD_NOT_FOUND, missing

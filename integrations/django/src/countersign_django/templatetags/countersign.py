"""The component in a template: `{% load countersign %}`."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from countersign_django.conf import configuration
from countersign_django.models import CountersignOrder

register = template.Library()


@register.simple_tag
def countersign_script() -> SafeString:
    """The component's script, loaded from the service."""
    conf = configuration()
    url = f"{conf.base_url.rstrip('/')}/component/v1/countersign-notice.js"
    if not conf.component_integrity:
        return format_html('<script type="module" src="{}"></script>', url)
    return format_html(
        '<script type="module" src="{}" integrity="{}" crossorigin></script>',
        url,
        conf.component_integrity,
    )


@register.simple_tag
def countersign_notice(order: CountersignOrder, name: str = "ack_id") -> SafeString:
    """The notice of an order that was begun with `origin`: a field of the form around it."""
    return format_html(
        '<countersign-notice name="{}" required client-token="{}"></countersign-notice>',
        name,
        order.client_token,
    )

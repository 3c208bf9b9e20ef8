"""Who may come in. Everyone on this machine may, until an identity provider is configured."""

from __future__ import annotations

import streamlit as st

from pages._shell.layout import state_panel


def configured() -> bool:
    """Say whether an identity provider is set in the server's secrets."""
    try:
        return "auth" in st.secrets
    except FileNotFoundError:
        return False


def require() -> None:
    """Stop here, before any page, when a sign-in is configured and has not happened."""
    if not configured() or st.user.is_logged_in:
        return
    st.title("Theodolite", anchor=False)
    state_panel("Please sign in", "This workspace is shared; its pages open after you sign in.")
    st.button("Sign in", type="primary", on_click=st.login)
    st.stop()
